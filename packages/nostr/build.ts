import { buildPackage } from '../../scripts/build-package.ts';

/** `npm run build -w @troupe/nostr && npm publish packages/nostr/dist` */
buildPackage({
  home: import.meta.dirname,
  core: { source: 'library/integrations/index', published: 'troupe/integrations' },
  manifest: ({ dependencies, engines }) => ({
    exports: { '.': { types: './index.d.ts', default: './index.js' }, './package.json': './package.json' },
    dependencies,
    engines,
  }),
});
