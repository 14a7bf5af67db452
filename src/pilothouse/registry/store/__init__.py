"""The generic store: one implementation of create, get, list, watch, update and delete for every resource.

store           Store: create and update; reading is its base, reservations what it asks for beside the object
reading         how new an entry has to be, and objects of entries
listing         pages of the present and of the past
removal         delete, of one object or of many
codec           between objects, the bytes that are served, and those that are stored
stored_form     the bytes that kube-apiserver stores; sizing says how many etcd takes
versions        resourceVersions as clients send them
"""
