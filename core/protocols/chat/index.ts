import type { ClientDialect } from '../client-dialect';
import { ChatReader } from './answer';
import { readChatRequest } from './read-request';
import { CHAT_RULES } from './request';
import { openChatWriter, writeChatError } from './write-answer';
import { writeChatRequest } from './write-request';

export const CHAT: ClientDialect = {
  readRequest: readChatRequest,
  names: CHAT_RULES.names,
  openWriter: openChatWriter,
  writeError: writeChatError,
  writeRequest: writeChatRequest,
  openReader: (settings) => new ChatReader(false, settings),
};
