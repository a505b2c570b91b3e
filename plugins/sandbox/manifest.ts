import { pluginManifest } from '../../core/gateway/manifest';
import sandbox from '.';

export = pluginManifest(sandbox);
