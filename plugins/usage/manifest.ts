import { pluginManifest } from '../../core/gateway/manifest';
import usage from '.';

export = pluginManifest(usage);
