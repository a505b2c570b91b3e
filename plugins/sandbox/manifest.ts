import { pluginManifest } from '../../core/express-gateway';
import sandbox from '.';

export = pluginManifest(sandbox);
