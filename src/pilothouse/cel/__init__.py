"""The Common Expression Language as Kubernetes uses it: parser, type checker, cost estimator and evaluator."""
