"""What kube-controller-manager is elsewhere: the list of controllers and what they are made with."""
