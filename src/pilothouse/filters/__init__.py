"""The filters every request passes on its way in. ``chain`` is the list of them."""
