import type { ServerResponse } from 'node:http';
import type { StreamAnswer } from '../../core/calls/call';
import { ClientLeft } from '../../core/http/client-left';
import { type AnsweredCall, answerHeaders, noteAnswer } from './headers';
import { StreamRelay, type StreamSettings } from './stream-relay';

/**
 * Sends a stream, event by event, at the client's pace. It ends like the upstream's, or with the protocol's own error event: an
 * unfinished answer never looks complete. If the client has left, the stream is read only for its usage.
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
  // The preamble was held for its full time without an event. The client gets at least the status now.
  if (answer.head.length === 0) response.flushHeaders();
  await new StreamRelay(call, answer, response, settings).run();
}
