import { pluginManifest } from '../../core/gateway/manifest';
import operator from '.';

export = pluginManifest(operator);
