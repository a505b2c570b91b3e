import type { Answer } from '../../core/calls/call';
import { ClientLeft } from '../../core/http/client-left';
import { type AnsweredCall, noteAnswer } from './headers';

/**
 * Charges the input of a call whose client left before its upstream began to answer. The time for reading on, or the money, has
 * run out.
 * @throws ClientLeft
 */
export async function chargeAbandoned(call: AnsweredCall, answer: Answer & { kind: 'abandoned' }): Promise<never> {
  noteAnswer(call, answer);
  const { meter, reservation } = call;
  await reservation.settle({ ...meter.readPartial(), candidate: answer.candidate, billing: 'partial' });
  throw new ClientLeft();
}
