import { readPortDomain } from '../../core/http/port-domain';
import type { Stop } from '../../core/resources';
import { Commands } from './commands/commands';
import { PortProxy } from './ports/port-proxy';
import type { SandboxService } from './service';

/** The service of the endpoints that reach into a running sandbox: commands, files and ports. */
export interface InsideService extends SandboxService {
  readonly commands: Commands;
  readonly ports: PortProxy;
  /** The domain below which each port has a host of its own. undefined: ports are reached by paths. */
  readonly portDomain: string | undefined;
}

export function createInside(service: SandboxService): InsideService {
  const { log, gateway } = service;
  return {
    ...service,
    commands: new Commands(service),
    ports: new PortProxy(service, log, gateway.isStopping, gateway.egress),
    portDomain: readPortDomain(process.env),
  };
}

/** Runs the background loops of commands and ports. Returns the function that stops them. */
export function runInside({ commands, ports }: InsideService): Stop {
  const stops = [commands.run(), ports.run()];
  return async () => {
    for (const stop of stops) await stop();
  };
}
