"""How JSON spells values, as regular languages."""
