import path from 'node:path';
import {
  API,
  type Checker,
  SignatureKind,
  type Symbol,
  SymbolFlags,
  type Type,
} from 'typescript/unstable/sync';
import type { Project } from 'typescript/unstable/sync';

/**
 * What a reader is not told on hover, by the language service of TypeScript: `name` for an export of one of `files`,
 * `Type.field` for a field that can be reached from one. `config`: a tsconfig.json that includes the files. `own`: the
 * folder whose types count. Default: that of `config`.
 */
export function withoutText(config: string, files: readonly string[], own = path.dirname(config)): string[] {
  const api = new API();
  try {
    const project = api.updateSnapshot({ openProjects: [config] }).getProjects()[0];
    if (!project) throw new Error(`there is no project at ${config}`);
    const folder = `${own}/`.toLowerCase();
    const walk = new Walk(project, (file) => file.toLowerCase().startsWith(folder));
    for (const file of files) walk.module(file);
    return [...walk.missing].sort();
  } finally {
    api.close();
  }
}

class Walk {
  readonly missing = new Set<string>();
  readonly #checker: Checker;
  readonly #project: Project;
  readonly #isOwn: (path: string) => boolean;
  readonly #seen = new Set<number>();

  constructor(project: Project, isOwn: (path: string) => boolean) {
    this.#project = project;
    this.#checker = project.checker;
    this.#isOwn = isOwn;
  }

  module(file: string): void {
    const source = this.#project.program.getSourceFile(file);
    const symbol = source && this.#checker.getSymbolAtLocation(source);
    if (!symbol) throw new Error(`${file} is not a module of the project`);
    const exports = this.#checker.getExportsOfModule(symbol);
    // As of a package whose `exports` lead to no types.
    if (exports.length === 0) throw new Error(`${file} exports nothing`);
    for (const exported of exports) this.#export(exported);
  }

  #export(exported: Symbol): void {
    const isAlias = (exported.flags & SymbolFlags.Alias) !== 0;
    const symbol = isAlias ? this.#checker.getAliasedSymbol(exported) : exported;
    if (!this.#isOurs(symbol)) return;
    if (!this.#isTold(symbol)) this.missing.add(exported.name);
    if (symbol.flags & SymbolFlags.Type) this.#type(this.#checker.getDeclaredTypeOfSymbol(symbol));
    if (symbol.flags & SymbolFlags.Value) this.#typeOf(symbol);
  }

  #typeOf(symbol: Symbol): void {
    const type = this.#checker.getTypeOfSymbol(symbol);
    if (type) this.#type(type);
  }

  #type(type: Type): void {
    if (this.#seen.has(type.id)) return;
    this.#seen.add(type.id);
    for (const part of this.#partsOf(type)) this.#type(part);
    if (!type.isObjectType()) return;
    // An interface may have its fields from a schema, whose type has no name.
    const heir = type.isClassOrInterface() ? type.getSymbol()?.name : undefined;
    for (const property of this.#checker.getPropertiesOfType(type)) this.#property(property, heir);
    for (const kind of [SignatureKind.Call, SignatureKind.Construct]) {
      for (const signature of this.#checker.getSignaturesOfType(type, kind)) {
        for (const parameter of signature.getParameters()) this.#typeOf(parameter);
        const returned = this.#checker.getReturnTypeOfSignature(signature);
        if (returned) this.#type(returned);
      }
    }
  }

  #partsOf(type: Type): readonly Type[] {
    const parts = type.isUnionType() || type.isIntersectionType() ? (type.getTypes() ?? []) : [];
    const given = type.isTypeReference() ? this.#checker.getTypeArguments(type) : [];
    return [...parts, ...given, ...type.getAliasTypeArguments()];
  }

  #property(property: Symbol, heir = ''): void {
    if (!this.#isOurs(property)) return;
    const type = this.#checker.getTypeOfSymbol(property);
    // Fields of types that have no name are told of where the whole is.
    const parent = property.getParent()?.name ?? '';
    const owner = parent === '' || parent.startsWith('__') ? heir : parent;
    const isNamed = owner !== '' && !owner.startsWith('__') && !property.name.startsWith('__');
    // A tag says by its value what it means.
    const isTag = type?.isLiteralType() ?? false;
    if (isNamed && !isTag && !this.#isTold(property)) this.missing.add(`${owner}.${property.name}`);
    if (type) this.#type(type);
  }

  #isTold(symbol: Symbol): boolean {
    const isDeprecated = symbol.getJsDocTags(this.#checker).some(({ name }) => name === 'deprecated');
    return isDeprecated || symbol.getDocumentationComment(this.#checker).trim() !== '';
  }

  #isOurs(symbol: Symbol): boolean {
    return symbol.declarations.some(({ path }) => this.#isOwn(path));
  }
}
