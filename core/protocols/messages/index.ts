import type { ClientDialect } from '../client-dialect';
import { MessagesReader } from './answer';
import { readMessagesRequest } from './read-request';
import { MESSAGES_RULES } from './request';
import { openMessagesWriter, writeMessagesError } from './write-answer';
import { writeMessagesRequest } from './write-request';

export const MESSAGES: ClientDialect = {
  readRequest: readMessagesRequest,
  names: MESSAGES_RULES.names,
  openWriter: openMessagesWriter,
  writeError: writeMessagesError,
  writeRequest: writeMessagesRequest,
  openReader: () => new MessagesReader(),
};
