import { buildPackage } from '../../scripts/build-package.ts';

/** `npm run build -w @troupe/client && npm publish packages/client/dist` */
buildPackage({
  home: import.meta.dirname,
  core: { source: 'http/client', published: 'troupe/client' },
  manifest: ({ peerDependencies, peerDependenciesMeta }) => ({
    exports: {
      '.': { types: './index.d.ts', default: './index.js' },
      './react': { types: './react.d.ts', default: './react.js' },
      './package.json': './package.json',
    },
    peerDependencies,
    peerDependenciesMeta,
  }),
});
