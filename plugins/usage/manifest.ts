import { pluginManifest } from '../../core/express-gateway';
import usage from '.';

export = pluginManifest(usage);
