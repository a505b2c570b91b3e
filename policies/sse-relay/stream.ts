import type { ServerResponse } from 'node:http';
import type { StreamAnswer } from '../../core/calls/call';
import { ClientLeft } from '../../core/http/client-left';
import { type AnsweredCall, answerHeaders, noteAnswer } from './headers';
import { StreamRelay, type StreamSettings } from './stream-relay';

/**
 * A stream, event by event as it comes, at the caller's pace. It ends as the upstream ended it, or with the protocol's
 * own error event: never as if it were complete when it is not. Without its client it is read for its usage alone.
 */
export async function sendStream(
  call: AnsweredCall,
  answer: StreamAnswer,
  response: ServerResponse,
  settings: StreamSettings,
): Promise<void> {
  noteAnswer(call, answer);
  if (call.leftAtMs !== undefined) {
    await new StreamRelay(call, answer, response, settings).run();
    throw new ClientLeft();
  }
  response.writeHead(answer.status, [
    ...answerHeaders(call, answer, settings.exposeAccountHeaders),
    'cache-control',
    'no-cache',
  ]);
  // A preamble that was held long enough without an event: the caller sees at least the status now.
  if (answer.head.length === 0) response.flushHeaders();
  await new StreamRelay(call, answer, response, settings).run();
}
