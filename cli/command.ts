import type { Command } from 'commander';
import { type Client, connect, type Environment } from './client';
import type { Output } from './output';

/** What a verb works with; the client is made when it is first used. */
export interface Session {
  readonly client: Client;
  readonly output: Output;
  readonly environment: Environment;
}

/** One verb of a noun: adds itself to the noun's command. */
export type Verb = (noun: Command, open: (command: Command) => Session) => void;

export function sessions(environment: Environment, output: Omit<Output, 'json'>): (command: Command) => Session {
  return (command) => ({
    client: connect(environment),
    environment,
    output: { ...output, json: command.optsWithGlobals()['json'] === true },
  });
}
