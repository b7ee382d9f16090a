/** Documents with texts that the extension has made; they live as long as they are open. */

import * as vscode from "vscode";
import { TEXT_SCHEME } from "./names.js";

export class Texts implements vscode.TextDocumentContentProvider, vscode.Disposable {
  #texts = new Map<string, string>();
  #made = 0;
  readonly #registrations: vscode.Disposable[];

  constructor() {
    this.#registrations = [
      vscode.workspace.registerTextDocumentContentProvider(TEXT_SCHEME, this),
      vscode.workspace.onDidCloseTextDocument(({ uri }) => this.#texts.delete(uri.toString())),
    ];
  }

  /** The name of a new document with this text. */
  add(title: string, text: string): vscode.Uri {
    this.#made += 1;
    const name = title.replace(/[/\\?#\s]+/gu, " ").trim();
    const uri = vscode.Uri.from({ scheme: TEXT_SCHEME, path: `/${this.#made}/${name}` });
    this.#texts.set(uri.toString(), text);
    return uri;
  }

  /** Shows a new document beside what is open. */
  async show(title: string, text: string, language = "plaintext"): Promise<void> {
    const document = await vscode.workspace.openTextDocument(this.add(title, text));
    await vscode.languages.setTextDocumentLanguage(document, language);
    await vscode.window.showTextDocument(document, { preview: true });
  }

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.#texts.get(uri.toString()) ?? "This text was made for an earlier window. Ask for it again.\n";
  }

  dispose(): void {
    for (const registration of this.#registrations) registration.dispose();
  }
}
