"""A small trainer that speaks the same language as a large one.

It teaches a neural network to read handwritten digits, in plain Python and on
one CPU core, and reports its progress the way SimpleTuner workers expect:
``python3 -m simpletuner.train`` with ``CONFIG_PATH`` in the environment.
"""
