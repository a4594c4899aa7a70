"""What a model can say: tokens as a flat trie, and bitmasks over them."""
