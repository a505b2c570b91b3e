import type { Random } from '../../support/random';
import type { Rig } from '../rig';

/** One kind of input that outsiders control. */
export interface Target {
  readonly name: string;
  readonly summary: string;
  /** Whether the input goes to the running gateway, whose event loop is measured. */
  readonly isOfGateway: boolean;
  /** Sends one input. Throws if the gateway misbehaves in a way other than a crash or a block. */
  run(rig: Rig, random: Random): Promise<void>;
}
