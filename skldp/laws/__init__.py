"""Integer laws that a device samples, with their exact epsilons."""
