"""The third server: CustomResourceDefinitions and the resources they define."""
