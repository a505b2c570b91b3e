import { type ModelAnswer, sseEvent } from '../../../demo/dialects/answer';
import { answerOf, type Said } from './answer';
import { respond } from './respond';
import type { Script } from './script';
import { type StreamOptions, type StreamScript, stream } from './stream';

/** Makes an unstreamed answer of generateContent. */
export function geminiAnswer(said: Said = {}): Script {
  const answer = answerOf(said, 'gemini');
  return respond({ body: chunkOf(answer, partsOf(answer).flat(), true) });
}

export function geminiStream(said: Said & StreamOptions = {}): StreamScript {
  const answer = answerOf(said, 'gemini');
  const pieces = partsOf(answer);
  const events = pieces.map((parts, at) => sseEvent(chunkOf(answer, parts, at === pieces.length - 1)));
  return stream(events, 0, said);
}

export function geminiFailure(
  status: number,
  what: { readonly message?: string; readonly status?: string } = {},
): Script {
  const { message = 'scripted failure', status: word = 'UNAVAILABLE' } = what;
  return respond({ status, body: { error: { code: status, message, status: word } } });
}

function partsOf({ texts, toolCalls }: ModelAnswer): Record<string, unknown>[][] {
  return [
    ...texts.map((text) => [{ text }]),
    ...toolCalls.map(({ id, name, input }) => [{ functionCall: { id, name, args: input } }]),
  ];
}

const REASONS = { end: 'STOP', tool: 'STOP', length: 'MAX_TOKENS', refusal: 'SAFETY' } as const;

function chunkOf(answer: ModelAnswer, parts: readonly unknown[], isLast: boolean): Record<string, unknown> {
  const { input, output, cacheRead } = answer.usage;
  return {
    candidates: [
      { content: { role: 'model', parts }, index: 0, ...(isLast && { finishReason: REASONS[answer.stop] }) },
    ],
    ...(isLast && {
      usageMetadata: {
        promptTokenCount: input + cacheRead,
        cachedContentTokenCount: cacheRead,
        candidatesTokenCount: output,
        totalTokenCount: input + cacheRead + output,
      },
    }),
    modelVersion: answer.model,
    responseId: answer.id,
  };
}
