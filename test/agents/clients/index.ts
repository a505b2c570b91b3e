import { claudeCode } from './claude-code';
import type { Client } from './client';
import { codex } from './codex';
import { continueChat, continueMessages, continueResponses } from './continue';
import { opencodeChat, opencodeMessages, opencodeResponses } from './opencode';
import { SDKS } from './sdks';

export const CLIENTS: readonly Client[] = [
  claudeCode,
  codex,
  opencodeMessages,
  opencodeChat,
  opencodeResponses,
  continueMessages,
  continueChat,
  continueResponses,
  ...SDKS,
];
