import { pluginManifest } from '../../core/gateway/manifest';
import rollouts from '.';

export = pluginManifest(rollouts);
