"""Structured outputs of vLLM, made by constrain; ``CONSTRAIN_VLLM=1`` switches it on (docs/serving.md).

vLLM finds :func:`constrain.integrations.vllm.plugin.register` by its entry point and calls it in each of its processes.
Nothing of vLLM is imported before.
"""
