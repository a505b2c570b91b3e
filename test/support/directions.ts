import { PROTOCOLS, type TestProtocol } from './calls';
import { answerOf, failureOf, streamOf } from './dialects';
import { geminiAnswer, geminiFailure, geminiStream, type Said, type Script, type StreamOptions } from './upstream';

/** The dialects of upstreams. No client speaks the last one. */
export const UPSTREAM_DIALECTS = [...PROTOCOLS, 'gemini'] as const;
export type UpstreamDialect = (typeof UPSTREAM_DIALECTS)[number];

interface Direction {
  readonly from: TestProtocol;
  readonly to: UpstreamDialect;
  /** The model of an upstream that speaks only `to`. */
  readonly model: string;
  readonly name: string;
}

/** The pairs of each client protocol and each other dialect. */
export const DIRECTIONS: readonly Direction[] = PROTOCOLS.flatMap((from) =>
  UPSTREAM_DIALECTS.filter((to) => to !== from).map((to) => ({
    from,
    to,
    model: `${to}-model`,
    name: `${from} to ${to}`,
  })),
);

export function answerIn(dialect: UpstreamDialect, said?: Said): Script {
  return dialect === 'gemini' ? geminiAnswer(said) : answerOf[dialect](said);
}

export function streamIn(dialect: UpstreamDialect, said?: Said & StreamOptions): Script {
  return dialect === 'gemini' ? geminiStream(said) : streamOf(dialect, said);
}

export function failureIn(dialect: UpstreamDialect, status: number, message: string): Script {
  return dialect === 'gemini' ? geminiFailure(status, { message }) : failureOf[dialect](status, { message });
}
