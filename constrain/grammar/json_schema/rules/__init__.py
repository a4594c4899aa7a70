"""From the normal form to rules and lexemes."""
