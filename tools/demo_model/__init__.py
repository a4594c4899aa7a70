"""Makes the files of :mod:`constrain.demo`: a tokenizer and a language model, from WordNet and the Jargon File."""
