import type { ClientDialect } from '../client-dialect';
import { MessagesReader } from './answer';
import { readRequest } from './read-request';
import { RULES } from './request';
import { openWriter, writeError } from './write-answer';
import { writeRequest } from './write-request';

export const MESSAGES: ClientDialect = {
  readRequest,
  names: RULES.names,
  openWriter,
  writeError,
  writeRequest,
  openReader: () => new MessagesReader(),
};
