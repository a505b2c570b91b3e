import type { AnswerEvent, WrittenCall } from '../catalog/answer';
import {
  estimatedOutput,
  mergeUsage,
  outputTokens,
  totalInputTokens,
  UNKNOWN_USAGE,
  type Usage,
  usageOf,
  withOutput,
} from '../catalog/usage';

/** The usage that a translated answer shows. An unknown count is replaced by the estimate that is charged, and never by 0. */
export class WrittenUsage {
  #reported: Usage = UNKNOWN_USAGE;
  #contentBytes = 0;

  constructor(private readonly call: Pick<WrittenCall, 'inputTokens'>) {}

  note(event: AnswerEvent): void {
    if (event.kind === 'add') this.#contentBytes += Buffer.byteLength(event.text);
    if (event.kind !== 'usage') return;
    this.#reported = mergeUsage(this.#reported, event.usage);
  }

  get counts(): Usage {
    const { inputTokens } = this.call;
    if (inputTokens === undefined) return this.#reported;
    const isInputKnown = totalInputTokens(this.#reported) > 0;
    const output = outputTokens(this.#reported);
    if (isInputKnown && output !== undefined) return this.#reported;
    const counted = isInputKnown ? this.#reported : usageOf({ input: inputTokens });
    const estimated = withOutput(counted, output || estimatedOutput(this.#contentBytes));
    const { reasoning } = this.#reported;
    return reasoning === undefined ? estimated : { ...estimated, reasoning };
  }
}
