import { readPortDomain } from '../../core/http/public-url';
import { Commands } from './commands/commands';
import { PortProxy } from './ports/port-proxy';
import { SandboxService } from './service';

/** The service for the endpoints that access a running sandbox: commands, files and ports. */
export class InstanceService extends SandboxService {
  readonly commands = new Commands(this);
  readonly ports = new PortProxy(this, this.log, this.gateway.isStopping, this.gateway.egress);
  /** The domain below which each port has a host of its own. undefined: ports are reached by paths. */
  readonly portDomain = readPortDomain(process.env);
}
