import { pluginManifest } from '../../core/express-gateway';
import rollouts from '.';

export = pluginManifest(rollouts);
