"""``convert --observe``: what values the original's expressions have in a run, where inference cannot tell.

The run is a process of its own (``record``), on a copy of the files that tells what each expression gave
(``instrument``); its kinds (``facts``) are used only where they decide something (``choose``).
"""
