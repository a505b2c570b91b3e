import type { ClientDialect } from '../client-dialect';
import { openReader } from './read-answer';
import { names, readRequest } from './read-request';
import { openWriter, writeError } from './write-answer';
import { writeRequest } from './write-request';

export const RESPONSES: ClientDialect = { readRequest, names, openWriter, writeError, writeRequest, openReader };
