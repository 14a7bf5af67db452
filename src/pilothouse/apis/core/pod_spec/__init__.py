"""The pod spec: defaulting, validation, warnings, shared by pods and by every workload with a pod template.

A *template* is ``{"metadata": …, "spec": …}``. Paths are those of the struct that is passed. What other packages use:

    defaults      default_pod_spec(spec) · default_pod_template(template) · default_claim_spec(spec)
    options       PodValidationOptions · options_for_template(gates, old=None): for a template that replaces ``old``
    templates     validate_pod_template(template, path, errs, options)
                  validate_template_metadata(metadata, path, errs): where only labels and annotations may be set
    validation    validate_pod_spec(spec, metadata, path, errs, options): metadata is the pod's, None for templates
    annotations   validate_pod_annotations(annotations, spec, path, errs, options): path is that of the annotations
                  drop_legacy_annotations(metadata)
    warnings      template_warnings(template, path): the Warning headers for a template
    claims        validate_claim_spec(spec, path, errs) · validate_claim_template(template, path, errs): volume claims

Selectors beside templates are in ``pilothouse.apis.selectors``. Nothing here does I/O or knows of requests.
"""
