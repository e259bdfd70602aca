"""The text of the files that a new instance directory starts with."""

from typing import Final
from xml.sax.saxutils import escape, quoteattr

from delosmq.config.bootstrap import BOOTSTRAP_NAMESPACE
from delosmq.model.settings import WebBind
from delosmq.security.access import PERMISSIONS

USERS_COMMENT: Final = """Who may log in: user = password, as `delosmq mask` prints it.
Roles are in artemis-roles.properties. Changes take effect at the next start or SIGHUP."""

ROLES_COMMENT: Final = """Who holds which role: role = user,user
What a role may do stands in broker.xml, below <security-settings>."""

_BROKER_XML: Final = """<?xml version="1.0" encoding="UTF-8"?>
<configuration xmlns="urn:activemq">
   <core xmlns="urn:activemq:core">

      <name>{name}</name>

      <!-- false keeps all messages in memory: nothing survives a stop -->
      <persistence-enabled>true</persistence-enabled>
      <journal-directory>data/journal</journal-directory>
      <journal-file-size>64M</journal-file-size>

      <!-- Memory of all messages together. Without this: half of the machine's or the control group's.
      <global-max-size>1G</global-max-size>
      -->

      <acceptors>
         <!-- Destinations /queue/a and /topic/a are the address a, anycast and multicast.
              0.0.0.0 instead of the host listens on every interface; add TLS then:
              ;sslEnabled=true;keyStorePath=broker.pem (a PEM file beside this one). -->
         <acceptor name="stomp">{stomp_url}</acceptor>
         <!-- For JMS clients: tcp://host:port, or failover:(tcp://host:port). -->
         <acceptor name="openwire">{openwire_url}</acceptor>
      </acceptors>

      <!-- Only the setting with the most specific match counts for an address. -->
      <security-settings>
         <security-setting match="#">
{permissions}
         </security-setting>
      </security-settings>

      <!-- What a more specific match leaves unset, a less specific one fills. -->
      <address-settings>
         <address-setting match="#">
            <dead-letter-address>DLQ</dead-letter-address>
            <expiry-address>ExpiryQueue</expiry-address>
            <max-delivery-attempts>10</max-delivery-attempts>
            <redelivery-delay>0</redelivery-delay>
            <!-- when memory is full: BLOCK producers, FAIL their sends or DROP messages -->
            <address-full-policy>BLOCK</address-full-policy>
            <auto-create-addresses>true</auto-create-addresses>
            <auto-create-queues>true</auto-create-queues>
            <!-- Queues and addresses that were made automatically go once they are empty and no client uses them. -->
            <auto-delete-queues>true</auto-delete-queues>
            <auto-delete-addresses>true</auto-delete-addresses>
         </address-setting>
      </address-settings>

      <addresses>
         <address name="DLQ">
            <anycast>
               <queue name="DLQ"/>
            </anycast>
         </address>
         <address name="ExpiryQueue">
            <anycast>
               <queue name="ExpiryQueue"/>
            </anycast>
         </address>
         <!-- A ring keeps the newest messages only:
         <address name="prices">
            <multicast>
               <queue name="prices.last" ring-size="3"/>
            </multicast>
         </address>
         -->
      </addresses>

   </core>
</configuration>
"""

_BOOTSTRAP_XML: Final = """<?xml version="1.0" encoding="UTF-8"?>
<broker xmlns="{namespace}">
   <!-- Health, metrics and the management API. -->
   <web>
      <binding name="http" {attributes}/>
   </web>
</broker>
"""


def broker_xml(name: str, role: str, host: str, stomp_port: int, *, openwire_port: int) -> str:
    """etc/broker.xml of a new instance: an acceptor for each protocol, every permission for ``role``."""
    bracketed = f"[{host}]" if ":" in host else host
    url = f"tcp://{bracketed}:{stomp_port}?protocols=STOMP;anycastPrefix=/queue/;multicastPrefix=/topic/"
    permissions = "\n".join(
        f'            <permission type="{permission}" roles={quoteattr(role)}/>' for permission in PERMISSIONS
    )
    return _BROKER_XML.format(
        name=escape(name),
        stomp_url=escape(url),
        openwire_url=escape(f"tcp://{bracketed}:{openwire_port}?protocols=OPENWIRE,CORE"),
        permissions=permissions,
    )


def bootstrap_xml(web: WebBind) -> str:
    """etc/bootstrap.xml of a new instance."""
    written = {"uri": web.url}
    if web.tls is not None:
        written |= {"keyStorePath": web.tls.key_store_path, "trustStorePath": web.tls.trust_store_path}
        written |= {"clientAuth": "true" if web.tls.need_client_auth else ""}
    attributes = " ".join(f"{name}={quoteattr(text)}" for name, text in written.items() if text)
    return _BOOTSTRAP_XML.format(namespace=BOOTSTRAP_NAMESPACE, attributes=attributes)
