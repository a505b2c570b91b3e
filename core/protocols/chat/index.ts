import type { ClientDialect } from '../client-dialect';
import { ChatReader } from './answer';
import { readRequest } from './read-request';
import { RULES } from './request';
import { openWriter, writeError } from './write-answer';
import { writeRequest } from './write-request';

export const CHAT: ClientDialect = {
  readRequest,
  names: RULES.names,
  openWriter,
  writeError,
  writeRequest,
  openReader: (settings) => new ChatReader(false, settings),
};
