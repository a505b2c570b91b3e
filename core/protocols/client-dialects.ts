import type { Protocol, TRANSLATED } from '../catalog/protocols';
import { ChatReader } from './chat/answer';
import { readChatRequest } from './chat/read-request';
import { CHAT_RULES } from './chat/request';
import { ChatWriter, writeChatError } from './chat/write-answer';
import { writeChatRequest } from './chat/write-request';
import type { ClientDialect } from './client-dialect';
import { MessagesReader } from './messages/answer';
import { readMessagesRequest } from './messages/read-request';
import { MESSAGES_RULES } from './messages/request';
import { MessagesWriter, writeMessagesError } from './messages/write-answer';
import { writeMessagesRequest } from './messages/write-request';
import { ResponsesReader } from './responses/answer';
import { readResponsesRequest } from './responses/read-request';
import { RESPONSES_RULES } from './responses/request';
import { ResponsesWriter, writeResponsesError } from './responses/write-answer';
import { writeResponsesRequest } from './responses/write-request';

export const MESSAGES: ClientDialect = {
  readRequest: readMessagesRequest,
  names: MESSAGES_RULES.names,
  openWriter: (call) => new MessagesWriter(call),
  writeError: writeMessagesError,
  writeRequest: writeMessagesRequest,
  openReader: () => new MessagesReader(),
};

export const CHAT: ClientDialect = {
  readRequest: readChatRequest,
  names: CHAT_RULES.names,
  openWriter: (call) => new ChatWriter(call),
  writeError: writeChatError,
  writeRequest: writeChatRequest,
  openReader: (settings) => new ChatReader(false, settings),
};

export const RESPONSES: ClientDialect = {
  readRequest: readResponsesRequest,
  names: RESPONSES_RULES.names,
  openWriter: (call) => new ResponsesWriter(call),
  writeError: writeResponsesError,
  writeRequest: writeResponsesRequest,
  openReader: () => new ResponsesReader(),
};

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
