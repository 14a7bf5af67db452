"""From a routed request to an answer: decoding, verbs, negotiation, output, discovery."""
