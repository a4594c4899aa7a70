from constrain.uninterrupted import load_numpy

load_numpy()
