import type { Answer } from '../../core/calls/call';
import { ClientLeft } from '../../core/http/client-left';
import { type AnsweredCall, noteAnswer } from './headers';

/**
 * Charges the input of a call whose upstream had not begun to answer when the time for reading on without its client, or the money,
 * was over.
 * @throws ClientLeft
 */
export async function chargeAbandoned(call: AnsweredCall, answer: Answer & { kind: 'abandoned' }): Promise<never> {
  noteAnswer(call, answer);
  const { meter, reservation } = call;
  await reservation.settle({ ...meter.readPartial(), candidate: answer.candidate, billing: 'partial' });
  throw new ClientLeft();
}
