import type { ClientDialect } from '../client-dialect';
import { ResponsesReader } from './answer';
import { readResponsesRequest } from './read-request';
import { RESPONSES_RULES } from './request';
import { openResponsesWriter, writeResponsesError } from './write-answer';
import { writeResponsesRequest } from './write-request';

export const RESPONSES: ClientDialect = {
  readRequest: readResponsesRequest,
  names: RESPONSES_RULES.names,
  openWriter: openResponsesWriter,
  writeError: writeResponsesError,
  writeRequest: writeResponsesRequest,
  openReader: () => new ResponsesReader(),
};
