"""What programs say of a connection beside its URL."""

import ssl
from collections.abc import Mapping
from dataclasses import replace
from typing import TypedDict

from delosmq.client.options.arguments import demand_kind, demand_text
from delosmq.client.options.option_texts import refuse_unknown
from delosmq.client.options.redelivery_policies import RedeliveryPolicies
from delosmq.client.options.urls import ConnectionPlan, plan_of
from delosmq.sessions.openwire.client.options import RedeliveryPolicy


class ConnectOptions(TypedDict, total=False):
    """All may be left out.

    Attributes:
        user, password: go before ``jms.userName`` and ``jms.password`` in the URL.
        client_id: needed by durable subscriptions.
        ssl_context: goes before what the URL says of TLS.
        redelivery_policies: of single destinations, by names such as ``orders`` and ``topic://prices.>``; they go
            before ``jms.redeliveryPolicy`` in the URL.
    """

    user: str
    password: str
    client_id: str
    ssl_context: ssl.SSLContext | None
    redelivery_policies: Mapping[str, RedeliveryPolicy] | None


def plan_for(
    url: str,
    *,
    user: str = "",
    password: str = "",
    client_id: str = "",
    ssl_context: ssl.SSLContext | None = None,
    redelivery_policies: Mapping[str, RedeliveryPolicy] | None = None,
    **unknown: object,
) -> ConnectionPlan:
    """What the URL says, and what `ConnectOptions` say better.

    Args:
        unknown: refused, in the name of what the program has called.

    Raises:
        ClientOptionError: DMQ9050 to DMQ9052, DMQ9055, DMQ9056.
    """
    refuse_unknown("connect() and ConnectionFactory()", unknown, ConnectOptions.__annotations__)
    plan = plan_of(url)
    texts: dict[str, object] = {"user": user, "password": password, "client_id": client_id}
    for name, text in texts.items():
        if text is not None:  # as of a variable of the environment that is not set
            demand_text(name, text)
    demand_kind("ssl_context", ssl_context, ssl.SSLContext | None, "an ssl.SSLContext")
    options = replace(plan.options, client_id=client_id) if client_id else plan.options
    return replace(
        plan,
        options=options,
        user=user or plan.user,
        password=password or plan.password,
        ssl_context=ssl_context,
        redelivery_policies=RedeliveryPolicies(redelivery_policies or {}, options.redelivery_policy),
    )
