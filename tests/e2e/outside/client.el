;;; client.el --- Plays a script of requests and notifications  -*- lexical-binding: t; -*-

;; Through jsonrpc.el, as it comes with Emacs; prints what came back.
;;
;;   SCRIPT=... SERVER=... emacs -Q --batch -l client.el

;;; Code:

(require 'jsonrpc)

(defconst client-limit 30 "Seconds that anything may take.")

(defun client-script ()
  "The steps to play."
  (with-temp-buffer
    (let ((coding-system-for-read 'utf-8))
      (insert-file-contents (getenv "SCRIPT")))
    (json-parse-buffer :object-type 'plist :null-object nil :false-object :json-false)))

(defun client-play ()
  "Play the script and print what came back."
  (let* ((process (make-process :name "server"
                                :command (list (getenv "SERVER") "serve")
                                :connection-type 'pipe
                                :coding 'utf-8-emacs-unix
                                :stderr (get-buffer-create "*server log*")
                                :noquery t))
         (connection (make-instance 'jsonrpc-process-connection :name "server" :process process))
         (results nil)
         (deadline (+ (float-time) client-limit)))
    (mapc (lambda (step)
            (let ((method (intern (concat ":" (plist-get step :method))))
                  (params (plist-get step :params)))
              (if (equal (plist-get step :kind) "request")
                  (push (jsonrpc-request connection method params :timeout client-limit) results)
                (jsonrpc-notify connection method params))))
          (client-script))
    (while (and (process-live-p process) (< (float-time) deadline))
      (accept-process-output process 0.05))
    (let ((coding-system-for-write 'utf-8))
      (princ (decode-coding-string
              (json-serialize (list :results (vconcat (nreverse results))
                                    :exitCode (if (process-live-p process) -1
                                                (process-exit-status process)))
                              :null-object nil :false-object :json-false)
              'utf-8)))))

(set-language-environment "UTF-8")
(client-play)

;;; client.el ends here
