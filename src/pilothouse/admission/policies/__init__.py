"""Admission policies: rules written as expressions, which need no webhook to be enforced.

criteria       which requests a policy or a binding speaks of
definitions    stored policies together with their bindings, in the form requests are matched against
params         the objects that a binding hands to its policy
inputs         what expressions see of one request
validations    validating policies
mutations      mutating policies
errors         how mutations fail
plugin         what both plug-ins share
type_checking  what of a policy does not fit the types that it matches
"""
