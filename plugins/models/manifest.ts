import { pluginManifest } from '../../core/gateway/manifest';
import models from '.';

export = pluginManifest(models);
