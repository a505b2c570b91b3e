import type { Protocol, TRANSLATED } from '../catalog/protocols';
import { CHAT } from './chat';
import type { ClientDialect } from './client-dialect';
import { MESSAGES } from './messages';
import { RESPONSES } from './responses';

const CLIENT_DIALECTS: Readonly<Record<(typeof TRANSLATED)[number], ClientDialect>> = {
  messages: MESSAGES,
  chat: CHAT,
  responses: RESPONSES,
};

/** Returns the dialect of a protocol. @throws for a protocol that cannot be translated; the catalog offers no candidate that needs such a translation */
export function clientDialect(protocol: Protocol): ClientDialect {
  if (protocol in CLIENT_DIALECTS) return CLIENT_DIALECTS[protocol as keyof typeof CLIENT_DIALECTS];
  throw new Error(`calls of the protocol ${protocol} are not translated`);
}
