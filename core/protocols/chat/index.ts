import type { ClientDialect } from '../client-dialect';
import { openReader } from './read-answer';
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
  openReader,
};
