import type { ClientDialect } from '../client-dialect';
import { ResponsesReader } from './answer';
import { readRequest } from './read-request';
import { RULES } from './request';
import { openWriter, writeError } from './write-answer';
import { writeRequest } from './write-request';

export const RESPONSES: ClientDialect = {
  readRequest,
  names: RULES.names,
  openWriter,
  writeError,
  writeRequest,
  openReader: () => new ResponsesReader(),
};
