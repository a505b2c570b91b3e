import { pluginManifest } from '../../core/express-gateway';
import upstreams from '.';

export = pluginManifest(upstreams);
